-- The same grant in PostgreSQL: seen this key? else currency, item, key and ledger entry, in one
-- transaction, on two disks before the answer. A profile is
-- about 1 KiB: a document of 600 bytes and items of 384, of which the oldest falls off.
\set ON_ERROR_STOP on
CREATE TABLE profile(
    player int PRIMARY KEY, gold bigint NOT NULL, version bigint NOT NULL,
    items text NOT NULL, document text NOT NULL) WITH (fillfactor = 70);
ALTER TABLE profile ALTER items SET STORAGE PLAIN, ALTER document SET STORAGE PLAIN;
CREATE TABLE operation(
    op_id uuid PRIMARY KEY, balance bigint NOT NULL, decided_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE ledger(
    player int NOT NULL, seq bigint GENERATED ALWAYS AS IDENTITY (CACHE 50), op_id uuid NOT NULL,
    amount bigint NOT NULL, item text NOT NULL, balance bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (player, seq));
INSERT INTO profile SELECT p, 0, 0, repeat(md5(p::text), 12), left(repeat(md5((-p)::text), 19), 600)
    FROM generate_series(0, :players - 1) p;

-- The balance; negative when the op_id was known.
CREATE FUNCTION grant_once(p int, id uuid, amount bigint, item text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
    SELECT balance INTO result FROM operation WHERE op_id = id;
    IF FOUND THEN RETURN -result; END IF;
    UPDATE profile SET gold = gold + amount, items = right(items || item, 384), version = version + 1
        WHERE player = p
        RETURNING gold INTO STRICT result;
    INSERT INTO operation(op_id, balance) VALUES (id, result);
    INSERT INTO ledger(player, op_id, amount, item, balance) VALUES (p, id, amount, item, result);
    RETURN result;
END $$;
