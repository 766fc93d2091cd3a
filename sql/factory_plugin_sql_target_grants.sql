-- An account confined to the isolated target catalog.
--
-- Run as an administrator of the target's server, on MySQL 5.6 or later or MariaDB 10.6 or later.
-- Put in the host Tollgate connects from and a password of your own.
-- Once created, running the GRANT again changes nothing.

CREATE USER 'tollgate_target'@'%' IDENTIFIED BY '<password>';

-- What allowed statements and the receipt ledger need, and nothing else: no ALTER, no INDEX, no
-- routines, views, triggers or events, no GRANT OPTION, and nothing on *.* or any other catalog.
-- REFERENCES is for foreign keys. The backslashes matter: an unescaped underscore stands for any
-- character. On a server with partial_revokes=ON write the name without them.
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES
    ON `ruoyi\_plugin\_preview`.* TO 'tollgate_target'@'%';

-- Ending an earlier session of the same account needs no further privilege.
