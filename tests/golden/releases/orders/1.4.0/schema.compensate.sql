DROP TABLE IF EXISTS customer_order;
DROP TABLE IF EXISTS order_status;
