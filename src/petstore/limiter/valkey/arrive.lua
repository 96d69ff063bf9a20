-- A process has connected. If the server's history is another one than that stored beside the epoch, its data set
-- may be older than the counts of past replies: a new epoch begins, and take.lua believes no record until the store
-- was read. Versions may be older too, so they move.
--
-- A server has a new history (replication ID) after a start and after it became a primary.
--
-- KEYS  epoch, stored history, versions of catalogue and keyring
-- Reply 0 the same data set, 1 another one, 2 unknown since INFO is not allowed, so treated as another one
local time = redis.call('TIME')
local info = redis.pcall('INFO', 'replication')
local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)') or ''
local epoch, stored = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
if epoch and history ~= '' and history == stored then
  return 0
end
for _, key in ipairs({KEYS[1], KEYS[3], KEYS[4]}) do
  local begun = math.max((tonumber(redis.call('GET', key)) or 0) + 1, time[1] * 1000000 + time[2])
  redis.call('SET', key, string.format('%.0f', begun))
end
redis.call('SET', KEYS[2], history)
if history == '' then
  return 2
end
return epoch and 1 or 0
