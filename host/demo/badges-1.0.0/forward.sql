-- A second plugin, with a table of its own.
CREATE TABLE IF NOT EXISTS badge (
  code VARCHAR(32) NOT NULL PRIMARY KEY,
  label VARCHAR(100) NOT NULL
);

INSERT IGNORE INTO badge (code, label) VALUES ('early', 'Early bird'), ('regular', 'Regular; since 2020');
