-- Requests of some keys, one key after another: all windows of its account or none, refusals and bans of the key, and
-- both versions. Several of one key are as if they came one after another, unless some of them would be refused.
-- The same rules as quota.decide, in the same integers (milliseconds); tests compare the two.
--
-- A record has the epoch (arrive.lua) in which it was written. A record of an earlier epoch may be old: it is merged
-- with the store's record, so that neither counts nor bans go backwards.
--
-- KEYS  versions of catalogue and keyring, sets of their writers, epoch; of each key the windows of its account and
--       its ban; all in one slot
-- ARGV  1  "strikes_allowed window grace forgiven_after duration ..."
--       of each key "limit ... pardoned_ms cached_version cached_until_ms requests", 0 0 for an uncached Caller;
--       0 requests: what is left, and nothing of the account is written
--       then, of a single key, where they are needed:
--       3  the epoch in which the store was read, "-" if it was not; its records of 4 the account, 5 the key
--       6  "opened used ...": counts of an outage that are pending for this account
-- Reply for each key one of
--       {0, catalogue, keyring, now}   the Caller was cached under another keyring, or for too long
--       {1, epoch}                     no record of account or key in this epoch: read the store, call again
--       {2 admitted or 3 refused, catalogue, keyring, now, opened, used, ...}
--       {4 banned or 5 began now, catalogue, keyring, now, from, until, level, pardoned}
--       {6}                            of several requests some would be refused: none is taken, call for each
-- A version of 0 is unknown: a writer is at work.
-- What stands in double braces, scripts.py writes once for each window, in their order: @ is its number, @LENGTH its
-- length, @OPENS at which multiples it opens, @UNIT the unit of its opening in texts, all in milliseconds. Loops over
-- tables take half as long again.
local DAY = 86400000
local floor, ceil, max, min, format, match = math.floor, math.ceil, math.max, math.min, string.format, string.match

local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

local held = redis.call('MGET', KEYS[1], KEYS[2], KEYS[5], unpack(KEYS, 6))
local catalogue, keyring, epoch = tonumber(held[1]), tonumber(held[2]), held[3] or ''
if not catalogue or not keyring or redis.call('EXISTS', KEYS[3], KEYS[4]) > 0 then
  -- A missing version starts with the time, so that an emptied server never repeats one. A writer that is
  -- overdue is dead: it is removed, and the version moves.
  local function current(version, key, writers)
    if redis.call('ZREMRANGEBYSCORE', writers, '-inf', now) > 0 or not version then
      version = max((version or 0) + 1, time[1] * 1000000 + time[2])
      redis.call('SET', key, format('%.0f', version))
    end
    return redis.call('EXISTS', writers) > 0 and 0 or version
  end
  catalogue = current(catalogue, KEYS[1], KEYS[3])
  keyring = current(keyring, KEYS[2], KEYS[4])
end

local replies, written = {}, {} -- the latter by name: two keys may be of one account
local read_in, stored_account, stored_key, pending
if #KEYS == 7 then read_in, stored_account, stored_key, pending = ARGV[3], ARGV[4], ARGV[5], ARGV[6] end

-- A loop, in which `break` ends a key: a function takes 2 us more for a single one.
for at = 1, (#KEYS - 5) / 2 do repeat
  local account_name, key_name = KEYS[2 * at + 4], KEYS[2 * at + 5]
  local {{limit_@, }}pardoned_now, cached_version, cached_until, requests =
    match(ARGV[at + 1], '^{{(%d+) }}(%d+) (%d+) (%d+) (%d+)$')
  if cached_version ~= '0' and (tonumber(cached_version) ~= keyring or now >= tonumber(cached_until)) then
    replies[at] = {0, catalogue, keyring, now}
    break
  end
  -- A record of another list of windows does not match: it counts as none.
  local account = written[account_name] or held[2 * at + 2] or ''
  local {{opened_@, used_@, }}epoch_then = match(account, '^{{(-?%d+) (%d+) }}(%d+)$')
  local key, key_epoch = match(written[key_name] or held[2 * at + 3] or '', '^(.-) (%d+)$')
  local account_changed, key_changed = epoch_then ~= epoch, key_epoch ~= epoch
  if (account_changed or key_changed) and read_in ~= epoch then
    -- Emptied, evicted, or not ours: a text that is none of an exact number. No record is ever of such a one.
    if #epoch > 16 or not match(epoch, '^%d+$') or format('%.0f', epoch) ~= epoch then
      epoch = format('%.0f', time[1] * 1000000 + time[2])
      redis.call('SET', KEYS[5], epoch)
    end
    replies[at] = {1, tonumber(epoch)}
    break
  end
  pardoned_now, requests = tonumber(pardoned_now), tonumber(requests)
  {{limit_@, opened_@, used_@ = tonumber(limit_@), opened_@ and opened_@ * @UNIT, tonumber(used_@)
  }}
  if account_changed then -- of each window the later one, of the same window the greater count
    local {{its_opened_@, its_used_@, }}_ = match(stored_account .. ' ', '^{{(-?%d+) (%d+) }}$')
    {{its_opened_@, its_used_@ = its_opened_@ * @UNIT, tonumber(its_used_@)
    if not opened_@ or its_opened_@ > opened_@ or its_opened_@ == opened_@ and its_used_@ > used_@ then
      opened_@, used_@ = its_opened_@, its_used_@
    end
    }}
  end
  if key_changed then -- the one with the later pardon, then the later start, then the later strikes
    local function order(ban)
      local strikes, strikes_opened, from, pardoned =
        match(ban, '^%d+ %d+ (%d+) (%d+) %d+ (%d+) %d+ (%d+)$')
      return format('%016.0f %016.0f %016.0f %016.0f', pardoned, from, strikes_opened, strikes)
    end
    if not key or key == '-' or stored_key ~= '-' and order(stored_key) > order(key) then key = stored_key end
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
  {{if now < opened_@ then
    opened_@, account_changed = now - now % @OPENS, true
  end
  }}if now < from then
    from, till, key_changed = now, ceil((now + till - from) / 1000) * 1000, true
  end

  -- New windows open with a request that may pass, or with pending counts.
  local banned, has_pending = now < till, (pending or '') ~= ''
  if has_pending or not banned then
    {{if now - opened_@ >= @LENGTH then
      opened_@, used_@, account_changed = now - now % @OPENS, 0, true
    end
    }}
  end
  if has_pending then
    local {{its_opened_@, its_used_@, }}_ = match(pending .. ' ', '^{{(-?%d+) (%d+) }}$')
    {{its_opened_@ = min(its_opened_@ * @UNIT, now - now % @OPENS)
    if now - its_opened_@ < @LENGTH then
      if used_@ == 0 then opened_@ = its_opened_@ end
      used_@ = used_@ + its_used_@
    end
    }}
    account_changed = true
  end

  local admitted = not banned and (requests == 0 or{{ used_@ + requests <= limit_@ and}} true)
  if admitted then
    {{used_@ = used_@ + requests
    }}account_changed = true
  elseif requests > 1 and not banned then
    replies[at] = {6}
    break
  end

  local forgiven
  local began = false
  if not admitted and not banned or key_changed and key ~= '-' then
    local rule = {}
    for number in string.gmatch(ARGV[1], '%d+') do rule[#rule + 1] = tonumber(number) end
    forgiven = rule[4]
    if not admitted and not banned then
      -- The binding window: the one with less remaining, on a tie the later reset.
      local least, binding = math.huge, 0
      {{local left_@, reset_@ = max(limit_@ - used_@, 0), (opened_@ + @LENGTH) / 1000
      if left_@ < least or left_@ == least and reset_@ > binding then least, binding = left_@, reset_@ end
      }}

      -- The first 429 of a window does not count, nor those within the grace after it: they were in flight.
      if reset ~= binding then
        reset, first = binding, now
      elseif now - first > rule[3] then
        if now < strikes_opened or now - strikes_opened >= rule[2] then
          strikes_opened, strikes = now, 0
        end
        strikes = strikes + 1
        if strikes > max(rule[1], limit_1) then
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

  {{opened_@ = floor(opened_@ / @UNIT)
  }}if account_changed and requests > 0 then
    written[account_name] = format('{{%.0f %.0f }}%s'{{, opened_@, used_@}}, epoch)
    redis.call('SET', account_name, written[account_name], 'PX', 2 * DAY)
  end
  if key_changed and key == '-' then
    written[key_name] = '- ' .. epoch
    redis.call('SET', key_name, written[key_name], 'PX', 2 * DAY)
  elseif key_changed then
    written[key_name] = format('%.0f %.0f %.0f %.0f %.0f %.0f %.0f %.0f %s', reset, first, strikes,
      strikes_opened, level, from, till, pardoned, epoch)
    redis.call('SET', key_name, written[key_name], 'PX', format('%.0f', max(till - now, 0) + forgiven + DAY))
  end

  if banned or began then
    replies[at] = {began and 5 or 4, catalogue, keyring, now, from, till, level, pardoned}
  else
    replies[at] = {admitted and 2 or 3, catalogue, keyring, now{{, opened_@, used_@}} }
  end
until true end
return replies
