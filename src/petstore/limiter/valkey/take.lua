-- One request: all windows of its account or none, refusals and bans of its key, and both versions.
-- The same rules as quota.decide, in the same integers (milliseconds); tests compare the two.
--
-- A record has the epoch (arrive.lua) in which it was written. A record of an earlier epoch may be old: it is merged
-- with the store's record, so that neither counts nor bans go backwards.
--
-- KEYS  windows of the account, ban of the key, versions of catalogue and keyring, sets of their writers, epoch;
--       all in one slot
-- ARGV  1  "limit ... pardoned_ms cached_version cached_until_ms", the last two 0 for an uncached Caller
--       2  "minimum_rejections window grace forgiven_after duration ..."
--       3  the epoch in which the store was read, "" if it was not; its records of 4 the account, 5 the key
--       6  "opened used ...": counts of an outage that are pending for this account
-- Reply one of
--       {0, catalogue, keyring, now}   the Caller was cached under another keyring, or for too long
--       {1, epoch}                     no record of account or key in this epoch: read the store, call again
--       {2 admitted or 3 refused, catalogue, keyring, now, opened, used, ...}
--       {4 banned or 5 began now, catalogue, keyring, now, from, until, level, pardoned}
-- A version of 0 is unknown: a writer is at work.
-- Limits, and the pairs of an opening and a count, are in the order of the windows. scripts.py begins this script with
-- their list: LENGTH, at which multiples they open (OPENS) and the UNIT of openings in texts, all in milliseconds.
local DAY = 86400000
local floor, ceil, max, min, format, match = math.floor, math.ceil, math.max, math.min, string.format, string.match

local function numbers_of(text)
  local numbers = {}
  for number in string.gmatch(text, '-?%d+') do numbers[#numbers + 1] = tonumber(number) end
  return numbers
end

-- Openings in milliseconds, and counts; none for a record of another list of windows.
local function windows_of(text)
  local numbers, opened, used = numbers_of(text), {}, {}
  if #numbers ~= 2 * #LENGTH then return opened, used end
  for at = 1, #LENGTH do opened[at], used[at] = numbers[2 * at - 1] * UNIT[at], numbers[2 * at] end
  return opened, used
end

local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local held = redis.call('MGET', KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[7])
local catalogue, keyring, epoch = tonumber(held[3]), tonumber(held[4]), held[5]
if not epoch then -- emptied, or evicted
  epoch = format('%.0f', time[1] * 1000000 + time[2])
  redis.call('SET', KEYS[7], epoch)
end
if not catalogue or not keyring or redis.call('EXISTS', KEYS[5], KEYS[6]) > 0 then
  -- A missing version starts with the time, so that an emptied server never repeats one. A writer that is
  -- overdue is dead: it is removed, and the version moves.
  local function current(version, key, writers)
    if redis.call('ZREMRANGEBYSCORE', writers, '-inf', now) > 0 or not version then
      version = max((version or 0) + 1, time[1] * 1000000 + time[2])
      redis.call('SET', key, format('%.0f', version))
    end
    return redis.call('EXISTS', writers) > 0 and 0 or version
  end
  catalogue = current(catalogue, KEYS[3], KEYS[5])
  keyring = current(keyring, KEYS[4], KEYS[6])
end

local limits = numbers_of(ARGV[1])
local cached_until, cached_version, pardoned_now = table.remove(limits), table.remove(limits), table.remove(limits)
if cached_version ~= 0 and (cached_version ~= keyring or now >= cached_until) then
  return {0, catalogue, keyring, now}
end
local record, epoch_then = match(held[1] or '', '^(.-) (%d+)$')
local key, key_epoch = match(held[2] or '', '^(.-) (%d+)$')
local opened, used = windows_of(record or '')
local account_changed, key_changed = epoch_then ~= epoch or not opened[1], key_epoch ~= epoch
if (account_changed or key_changed) and ARGV[3] ~= epoch then
  return {1, tonumber(epoch)}
end

if account_changed then -- of each window the later one, of the same window the greater count
  local its_opened, its_used = windows_of(ARGV[4])
  for at = 1, #LENGTH do
    if not opened[at] or its_opened[at] > opened[at] or its_opened[at] == opened[at] and its_used[at] > used[at] then
      opened[at], used[at] = its_opened[at], its_used[at]
    end
  end
end
if key_changed then -- the one with the later pardon, then the later start, then the later strikes
  local function order(ban)
    local strikes, strikes_opened, from, pardoned =
      match(ban, '^%d+ %d+ (%d+) (%d+) %d+ (%d+) %d+ (%d+)$')
    return format('%016.0f %016.0f %016.0f %016.0f', pardoned, from, strikes_opened, strikes)
  end
  if not key or key == '-' or ARGV[5] ~= '-' and order(ARGV[5]) > order(key) then key = ARGV[5] end
end

-- "-" is a key without a refusal: most of them.
local reset, first, strikes, strikes_opened, level, from, till, pardoned = 0, 0, 0, 0, 0, 0, 0, 0
if key ~= '-' then
  reset, first, strikes, strikes_opened, level, from, till, pardoned =
    match(key, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  reset, first, strikes = tonumber(reset), tonumber(first), tonumber(strikes)
  strikes_opened, level = tonumber(strikes_opened), tonumber(level)
  from, till, pardoned = tonumber(from), tonumber(till), tonumber(pardoned)
end

if pardoned_now > pardoned then
  reset, first, strikes, strikes_opened, level, from, till = 0, 0, 0, 0, 0, 0, 0
  pardoned = pardoned_now  -- stored with the key's next refusal; until then applied anew, to the same effect
end

-- After the clock was set back: counts stay, and no window or ban ends later than its length from now.
for at = 1, #LENGTH do
  if now < opened[at] then
    opened[at], account_changed = now - now % OPENS[at], true
  end
end
if now < from then
  from, till, key_changed = now, ceil((now + till - from) / 1000) * 1000, true
end

-- New windows open with a request that may pass, or with pending counts.
local banned, has_pending = now < till, (ARGV[6] or '') ~= ''
if has_pending or not banned then
  for at = 1, #LENGTH do
    if now - opened[at] >= LENGTH[at] then
      opened[at], used[at], account_changed = now - now % OPENS[at], 0, true
    end
  end
end
if has_pending then
  local its_opened, its_used = windows_of(ARGV[6])
  for at = 1, #LENGTH do
    local began = min(its_opened[at], now - now % OPENS[at])
    if now - began < LENGTH[at] then
      if used[at] == 0 then opened[at] = began end
      used[at] = used[at] + its_used[at]
    end
  end
  account_changed = true
end

local admitted = not banned
for at = 1, #LENGTH do admitted = admitted and used[at] < limits[at] end
if admitted then
  for at = 1, #LENGTH do used[at] = used[at] + 1 end
  account_changed = true
end

local forgiven
local began = false
if not admitted and not banned or key_changed and key ~= '-' then
  local rule = numbers_of(ARGV[2])
  forgiven = rule[4]
  if not admitted and not banned then
    -- The binding window: the one with less remaining, on a tie the later reset.
    local least, binding = nil, nil
    for at = 1, #LENGTH do
      local left, its_reset = max(limits[at] - used[at], 0), (opened[at] + LENGTH[at]) / 1000
      if not least or left < least or left == least and its_reset > binding then least, binding = left, its_reset end
    end

    -- The first 429 of a window does not count, nor those within the grace after it: they were in flight.
    if reset ~= binding then
      reset, first = binding, now
    elseif now - first > rule[3] then
      if now < strikes_opened or now - strikes_opened >= rule[2] then
        strikes_opened, strikes = now, 0
      end
      strikes = strikes + 1
      if strikes > max(rule[1], limits[1]) then
        began = true
        if now - till >= forgiven then level = 0 end
        local duration = rule[min(level + 5, #rule)]
        level, strikes, strikes_opened = level + 1, 0, 0
        from, till = now, ceil((now + duration) / 1000) * 1000
      end
    end
    key, key_changed = 'refused', true
  end
end

local pairs_of_windows = {}
for at = 1, #LENGTH do
  pairs_of_windows[2 * at - 1], pairs_of_windows[2 * at] = floor(opened[at] / UNIT[at]), used[at]
end
if account_changed then
  local text = format(string.rep('%.0f ', 2 * #LENGTH), unpack(pairs_of_windows))
  redis.call('SET', KEYS[1], text .. epoch, 'PX', 2 * DAY)
end
if key_changed and key == '-' then
  redis.call('SET', KEYS[2], '- ' .. epoch, 'PX', 2 * DAY)
elseif key_changed then
  redis.call('SET', KEYS[2], format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s', reset, first, strikes,
    strikes_opened, level, from, till, pardoned, epoch), 'PX', format('%.0f', max(till - now, 0) + forgiven + DAY))
end

if banned or began then
  return {began and 5 or 4, catalogue, keyring, now, from, till, level, pardoned}
end
return {admitted and 2 or 3, catalogue, keyring, now, unpack(pairs_of_windows)}
