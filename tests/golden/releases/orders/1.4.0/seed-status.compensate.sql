DELETE FROM order_status WHERE code IN ('open', 'paid');
