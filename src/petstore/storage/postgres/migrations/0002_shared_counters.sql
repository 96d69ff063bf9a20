-- oldest: 2
-- Its one row says that processes serve with counters in Valkey, and so keep what they have read until they are
-- told: a command that can't tell them has to know it. A process that serves without Valkey takes it away.
CREATE TABLE shared_counters (
    one boolean PRIMARY KEY DEFAULT true CHECK (one)
);
