-- Follow-ups that live in other slots of a Cluster than the message they follow: the completion stores them beside itself, in the
-- same step; whoever completed moves them on at once, and housekeeping does where he could not.

-- complete_store. keys: queue. args: now, events, id, token, result as in complete, the follow-ups in the client's own form.
-- answer: that of complete, and the field under which follow-ups of this lease still wait ('' when they do not).
local function completeStore(keys, args)
  local c = open(keys[2], args)
  load(c, { args[3] })
  local held = heldBy(c, args[3], args[4]) ~= nil
  local answer, field = settleAll(c, { args[3], args[4], args[5] }, 1, 3, 3, 'c', completeOne), args[4]
  if held then
    call('HSET', c.names[':f'], field, args[6])
  elseif byte(answer) ~= 100 or call('HEXISTS', c.names[':f'], field) == 0 then
    field = ''
  end
  return reply(c, 0, { answer, field })
end
register('complete_store', {}, completeStore)

-- follow_ups: some of those that wait. keys: queue. args: how many at most. answer: field, follow-ups, …
local function followUpsWaiting(keys, args)
  local key = keys[2] .. ':f'
  if call('EXISTS', key) == 0 then return {} end
  return call('HRANDFIELD', key, args[1], 'WITHVALUES')
end
register('follow_ups', { 'no-writes' }, followUpsWaiting)

-- follow_ups_done. keys: queue. args: fields.
local function followUpsDone(keys, args)
  writeMany('HDEL', keys[2] .. ':f', args)
  return #args
end
register('follow_ups_done', { 'allow-oom' }, followUpsDone)
