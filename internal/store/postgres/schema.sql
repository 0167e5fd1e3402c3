-- The tables and functions of headgate's shared store, version 1. They are created in one
-- transaction by the first node that connects. Everything that is not needed to find a row
-- is sealed by the nodes: the database holds no key.
CREATE SCHEMA headgate;

-- The one row whose lock puts commits in order: the order of commits is that of revisions.
CREATE TABLE headgate.head (
	one           boolean PRIMARY KEY DEFAULT true CHECK (one),
	version       integer NOT NULL,
	readable_from integer NOT NULL,
	group_id      bytea   NOT NULL,
	seal          bytea   NOT NULL, -- tells whether a node's key is the right one
	revision      bigint  NOT NULL DEFAULT 0,
	id            bytea   NOT NULL DEFAULT '',
	log_size      bigint  NOT NULL DEFAULT 0,
	tokens        bigint  NOT NULL DEFAULT 0,
	moved         text    NOT NULL DEFAULT '',
	importing     boolean NOT NULL DEFAULT false
);

CREATE TABLE headgate.entry (
	key      text COLLATE "C" PRIMARY KEY,
	revision bigint      NOT NULL,
	modified timestamptz NOT NULL,
	expires  timestamptz,
	size     integer     NOT NULL,
	sealed   bytea       NOT NULL
);
CREATE INDEX entry_expires ON headgate.entry (expires) WHERE expires IS NOT NULL;

CREATE TABLE headgate.log (
	revision bigint      PRIMARY KEY,
	id       bytea       NOT NULL UNIQUE,
	made     timestamptz NOT NULL,
	sealed   bytea       NOT NULL
);

CREATE TABLE headgate.stream (
	name text COLLATE "C" PRIMARY KEY,
	last bigint NOT NULL
);
CREATE TABLE headgate.record (
	stream   text COLLATE "C" NOT NULL,
	sequence bigint      NOT NULL,
	made     timestamptz NOT NULL,
	sealed   bytea       NOT NULL,
	PRIMARY KEY (stream, sequence)
);

CREATE TABLE headgate.lease (
	name   text COLLATE "C" PRIMARY KEY,
	token  bigint      NOT NULL,
	holder text        NOT NULL,
	until  timestamptz NOT NULL
);

-- now is the engine's clock: that of the server, which goes on within a transaction.
CREATE FUNCTION headgate.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

CREATE TYPE headgate.outcome AS (what text, revision bigint, id bytea, name text, have bigint);

-- add appends records to streams whose last sequences the caller knows. It returns the
-- first stream that has another last sequence, or nothing.
CREATE FUNCTION headgate.add(names text[], lasts bigint[], ages bigint[], counts bigint[],
	streams text[], sequences bigint[], contents bytea[], at timestamptz)
RETURNS headgate.outcome LANGUAGE plpgsql AS $$
DECLARE
	have bigint;
	newest bigint;
BEGIN
	FOR i IN 1 .. cardinality(names) LOOP
		INSERT INTO headgate.stream (name, last) VALUES (names[i], 0) ON CONFLICT DO NOTHING;
		SELECT last INTO have FROM headgate.stream WHERE name = names[i] FOR UPDATE;
		IF have <> lasts[i] THEN
			RETURN ('stream', NULL, NULL, names[i], have)::headgate.outcome;
		END IF;
	END LOOP;
	INSERT INTO headgate.record (stream, sequence, made, sealed)
		SELECT s, n, at, c FROM unnest(streams, sequences, contents) AS r(s, n, c);
	FOR i IN 1 .. cardinality(names) LOOP
		SELECT max(n) INTO newest FROM unnest(streams, sequences) AS r(s, n) WHERE s = names[i];
		UPDATE headgate.stream SET last = newest WHERE name = names[i];
		DELETE FROM headgate.record WHERE stream = names[i] AND sequence IN (
			SELECT sequence FROM headgate.record WHERE stream = names[i] ORDER BY sequence LIMIT 128
		) AND (sequence <= newest - counts[i] OR made < at - ages[i] * interval '1 microsecond');
	END LOOP;
	RETURN NULL;
END $$;

-- closed tells why nothing is committed, or returns nothing.
CREATE FUNCTION headgate.closed(h headgate.head) RETURNS headgate.outcome LANGUAGE sql AS $$
	SELECT CASE
		WHEN h.importing THEN ('importing', NULL, NULL, NULL, NULL)::headgate.outcome
		WHEN h.moved <> '' THEN ('frozen', NULL, NULL, h.moved, NULL)::headgate.outcome
	END
$$;

-- change is a whole commit, in one statement: no node holds the lock of the head while it
-- waits for another message. What is expected of the head is in the seal of the log, so a
-- node that has not seen the newest commit is told, seals again, and repeats.
CREATE FUNCTION headgate.change(commit_id bytea, expected bigint, before bytea, contents_log bytea,
	if_keys text[], if_revisions bigint[],
	put_keys text[], put_contents bytea[], put_sizes bigint[], put_ttls bigint[],
	gone text[], expired_keys text[], expired_revisions bigint[],
	lease_name text, lease_token bigint,
	names text[], lasts bigint[], ages bigint[], counts bigint[],
	streams text[], sequences bigint[], contents bytea[],
	log_age bigint, log_max bigint)
RETURNS headgate.outcome LANGUAGE plpgsql AS $$
DECLARE
	h headgate.head;
	o headgate.outcome;
	at timestamptz;
	have bigint;
	trimmed bigint := 0;
	l record;
BEGIN
	SELECT * INTO h FROM headgate.head FOR UPDATE;
	at := headgate.now();
	SELECT revision INTO have FROM headgate.log WHERE id = commit_id;
	IF FOUND THEN
		RETURN ('made', have, commit_id, NULL, NULL)::headgate.outcome;
	END IF;
	o := headgate.closed(h);
	IF o.what IS NOT NULL THEN
		RETURN o;
	END IF;
	IF lease_name <> '' AND NOT EXISTS (SELECT FROM headgate.lease WHERE name = lease_name AND token = lease_token AND until > at) THEN
		RETURN ('fenced', NULL, NULL, lease_name, NULL)::headgate.outcome;
	END IF;
	FOR i IN 1 .. cardinality(if_keys) LOOP
		SELECT revision INTO have FROM headgate.entry WHERE key = if_keys[i] AND (expires IS NULL OR expires > at);
		IF coalesce(have, 0) <> if_revisions[i] THEN
			RETURN ('conflict', NULL, NULL, if_keys[i], coalesce(have, 0))::headgate.outcome;
		END IF;
	END LOOP;
	FOR i IN 1 .. cardinality(expired_keys) LOOP
		PERFORM FROM headgate.entry WHERE key = expired_keys[i] AND revision = expired_revisions[i] AND expires <= at;
		IF NOT FOUND THEN
			RETURN ('conflict', NULL, NULL, expired_keys[i], 0)::headgate.outcome;
		END IF;
	END LOOP;
	IF h.revision <> expected OR h.id <> before THEN
		RETURN ('head', h.revision, h.id, NULL, NULL)::headgate.outcome;
	END IF;
	o := headgate.add(names, lasts, ages, counts, streams, sequences, contents, at);
	IF o.what IS NOT NULL THEN
		RETURN o;
	END IF;
	INSERT INTO headgate.entry (key, revision, modified, expires, size, sealed)
		SELECT k, expected + 1, at, CASE WHEN t <> 0 THEN at + t * interval '1 microsecond' END, n, c
		FROM unnest(put_keys, put_contents, put_sizes, put_ttls) AS p(k, c, n, t)
	ON CONFLICT (key) DO UPDATE SET revision = excluded.revision, modified = excluded.modified,
		expires = excluded.expires, size = excluded.size, sealed = excluded.sealed;
	DELETE FROM headgate.entry WHERE key = ANY (gone) OR key = ANY (expired_keys);
	INSERT INTO headgate.log (revision, id, made, sealed) VALUES (expected + 1, commit_id, at, contents_log);
	h.log_size := h.log_size + length(contents_log);
	FOR l IN SELECT revision, made, length(sealed) AS size FROM headgate.log ORDER BY revision LIMIT 64 LOOP
		EXIT WHEN l.revision > expected OR h.log_size <= log_max AND l.made >= at - log_age * interval '1 microsecond';
		DELETE FROM headgate.log WHERE revision = l.revision;
		h.log_size := h.log_size - l.size;
	END LOOP;
	UPDATE headgate.head SET revision = expected + 1, id = commit_id, log_size = h.log_size;
	PERFORM pg_notify('headgate', (expected + 1)::text);
	RETURN ('made', expected + 1, commit_id, NULL, NULL)::headgate.outcome;
END $$;

-- append adds records without a commit.
CREATE FUNCTION headgate.append(stream_name text, expected bigint, age bigint, count bigint, sequences bigint[], contents bytea[])
RETURNS headgate.outcome LANGUAGE plpgsql AS $$
DECLARE
	o headgate.outcome;
BEGIN
	SELECT (headgate.closed(h)).* INTO o FROM headgate.head h;
	IF o.what IS NULL THEN
		o := headgate.add(ARRAY[stream_name], ARRAY[expected], ARRAY[age], ARRAY[count],
			array_fill(stream_name, ARRAY[cardinality(sequences)]), sequences, contents, headgate.now());
	END IF;
	IF o.what IS NULL THEN
		RETURN ('made', NULL, NULL, NULL, NULL)::headgate.outcome;
	END IF;
	RETURN o;
END $$;

-- acquire gives a lease to a holder unless another has it.
CREATE FUNCTION headgate.acquire(lease_name text, new_holder text, ttl bigint)
RETURNS TABLE (what text, token bigint, holder text, until timestamptz) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
	h headgate.head;
	o headgate.outcome;
	l headgate.lease;
	at timestamptz;
BEGIN
	SELECT * INTO h FROM headgate.head FOR UPDATE;
	at := headgate.now();
	o := headgate.closed(h);
	IF o.what IS NOT NULL THEN
		RETURN QUERY SELECT o.what, 0::bigint, o.name, at;
		RETURN;
	END IF;
	SELECT * INTO l FROM headgate.lease WHERE name = lease_name;
	IF FOUND AND l.until > at THEN
		RETURN QUERY SELECT 'held'::text, l.token, l.holder, l.until;
		RETURN;
	END IF;
	DELETE FROM headgate.lease WHERE until < at - interval '1 day';
	UPDATE headgate.head SET tokens = h.tokens + 1;
	INSERT INTO headgate.lease (name, token, holder, until)
		VALUES (lease_name, h.tokens + 1, new_holder, at + ttl * interval '1 microsecond')
	ON CONFLICT (name) DO UPDATE SET token = excluded.token, holder = excluded.holder, until = excluded.until;
	RETURN QUERY SELECT 'made'::text, h.tokens + 1, new_holder, at + ttl * interval '1 microsecond';
END $$;
