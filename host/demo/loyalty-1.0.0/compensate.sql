DROP TABLE IF EXISTS loyalty_member;
DROP TABLE IF EXISTS loyalty_tier;
