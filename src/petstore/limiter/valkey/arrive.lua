-- A process has connected. Where the server's history is another one than the one noted beside the epoch, its data
-- set may be older than the counts that were answered: a new epoch begins, and no record is believed any more
-- before the counter store was asked (take.lua). Versions may be older too, so they move.
--
-- A server draws a new name for its history when it starts and when it becomes a primary.
--
-- KEYS  epoch, name of the history, versions of catalogue and keyring
-- Response 0 the same data set, 1 another one, 2 unknown since INFO is not allowed, taken for another one
local time = redis.call('TIME')
local told = redis.pcall('INFO', 'replication')
local history = type(told) == 'string' and string.match(told, 'master_replid:(%x+)') or ''
local epoch, noted = redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2])
if epoch and history ~= '' and history == noted then
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
