INSERT IGNORE INTO order_status (code, label) VALUES
  ('open', 'Open; not yet paid'),
  ('paid', 'It''s paid');
