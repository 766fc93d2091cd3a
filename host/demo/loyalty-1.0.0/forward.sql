-- Loyalty tiers and the members that have one.
CREATE TABLE IF NOT EXISTS loyalty_tier (
  code     VARCHAR(16) NOT NULL PRIMARY KEY,
  label    VARCHAR(64) NOT NULL COMMENT 'shown to customers; never empty',
  benefits TEXT        NOT NULL COMMENT 'a JSON document'
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

CREATE TABLE IF NOT EXISTS loyalty_member (
  id        BIGINT      NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer  VARCHAR(64) NOT NULL,
  tier_code VARCHAR(16) NOT NULL,
  UNIQUE KEY uk_customer (customer),
  CONSTRAINT fk_member_tier FOREIGN KEY (tier_code) REFERENCES loyalty_tier (code)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;

INSERT IGNORE INTO loyalty_tier (code, label, benefits) VALUES
  ('bronze', 'Bronze; where everyone starts', '{"discount": 0, "badge": "it''s new"}'),
  ('silver', 'Silver "regulars"; -- no comment', '{"discount": 5, "path": "C:\\\\lounge"}'),
  ('gold',   'Gold', '{"discount": 10}'),
  ('trial',  'Trial; retired', '{}');

INSERT IGNORE INTO loyalty_member (customer, tier_code) VALUES
  ('O''Brien', 'silver'), ('Robert''); DROP TABLE loyalty_member;--', 'bronze');

-- The discount was raised after the first release.
INSERT INTO loyalty_tier (code, label, benefits) VALUES ('gold', 'Gold', '{"discount": 12}')
  ON DUPLICATE KEY UPDATE benefits = VALUES(benefits);

DELETE FROM loyalty_tier WHERE code = 'trial';
