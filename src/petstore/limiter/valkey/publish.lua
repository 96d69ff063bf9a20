-- A writer announces a change, and later its end.
--
-- KEYS  version and set of writers, of the catalogue, the keyring or both; all in one slot
-- ARGV  "begin" or "complete", the writer's name for this change, after how many milliseconds it counts as dead
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #KEYS, 2 do
  local version, writers = KEYS[i], KEYS[i + 1]
  if ARGV[1] == 'begin' then
    redis.call('ZADD', writers, now + ARGV[3], ARGV[2])
  else
    redis.call('ZREM', writers, ARGV[2])
    local moved = math.max((tonumber(redis.call('GET', version)) or 0) + 1, time[1] * 1000000 + time[2])
    redis.call('SET', version, string.format('%.0f', moved))
  end
end
return 1
