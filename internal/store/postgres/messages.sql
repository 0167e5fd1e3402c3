-- Messages between nodes, which live for seconds: they are not in the log of the server, and
-- a crash of it empties the table. Receivers delete what they read, senders what is old.
CREATE UNLOGGED TABLE IF NOT EXISTS headgate.message (
	id       bytea       PRIMARY KEY,
	sender   text        NOT NULL,
	receiver text        NOT NULL,
	sent     bigint      NOT NULL, -- by the sender, in microseconds since 1970; the seal is bound to it
	made     timestamptz NOT NULL,
	size     integer     NOT NULL,
	sealed   bytea       NOT NULL
);
ALTER TABLE headgate.message ALTER COLUMN sealed SET STORAGE EXTERNAL;
