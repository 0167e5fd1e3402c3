package control

import "time"

// publish records the result of the change, and notifies observers if there is something to
// report.
func (ch *change) publish(err error) {
	ch.control.noteLocked(ch, err)
	ch.control.publishLocked()
	if ch.merged != nil {
		ch.control.watcher.Discovery()
	}
	if err == nil && ch.discovered() && ch.difference().Empty() {
		return // an object that cannot be used came or went: that is an issue of its source
	}
	e := ch.event(err)
	ch.control.publishAll(&e)
}

// noteLocked keeps what became of a change.
func (c *Control) noteLocked(ch *change, err error) {
	if err == nil {
		c.mu.merged, c.mu.blamed = ch.merged, ch.merged.Blamed
		c.mu.again = c.mu.again || len(ch.merged.Blamed) > 0
		c.noteHostFieldsLocked(ch)
	}
	if ch.discovered() {
		if err == nil {
			c.mu.since = time.Now()
		}
		return // what was refused of the documents is so still
	}
	if err != nil {
		if !ch.edit {
			c.mu.refused = refusedState(asRefused(err))
		}
		return // the operator gets the response, and the files have not changed
	}
	c.mu.since, c.mu.revision = time.Now(), ch.revision
	if c.mu.degraded = ch.servesKept(); c.mu.degraded {
		return // what was refused is so still
	}
	c.mu.refused, c.mu.tried = nil, ""
	c.mu.digested, c.mu.digests = ch.declared, ch.digestsOf()
	c.changes.note(ch.revision, ch.cause, ch.changed)
	c.noteAppliedLocked()
	if ch.made != nil {
		c.mu.seen = etagOf(c.mu.digests) // so that the watch does not apply it again
	}
	switch {
	case ch.rollsBack != 0:
		c.endConfirmLocked()
	case ch.within > 0:
		c.awaitConfirmLocked()
	}
}

// publishAll passes an event to all observers.
func (c *Control) publishAll(e *Event) {
	for _, observe := range c.observers {
		observe(e)
	}
}
