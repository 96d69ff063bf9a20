-- oldest: 2
-- A webhook may have millions of events to send again, and the next ones are read every ten seconds.
CREATE INDEX webhook_repetitions_by_time ON webhook_repetitions (webhook_id, at_ms);
