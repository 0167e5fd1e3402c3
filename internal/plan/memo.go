package plan

import (
	"headgate/internal/exchange"
	"headgate/internal/file"
)

// memo holds what was compiled of settings that routes share: those that a proxy
// gives to its routes, the defaults, and those that nobody set.
type memo map[memoKey]*shareable

// memoKey is a row of the table of rooms, and settings by their address.
type memoKey struct {
	room     string
	settings any
}

// shareable is a filter, and what it uses: every unit that shares it does.
type shareable struct {
	filter exchange.Filter
	uses   unit
}

// once compiles settings, or returns what was compiled of them before.
func (c *compiler) once(key memoKey, compile func() (exchange.Filter, error)) (exchange.Filter, error) {
	if known := c.shared.memo[key]; known != nil {
		c.keeper.share(&known.uses)
		return known.filter, nil
	}
	at := c.keeper.mark()
	filter, err := compile()
	if err != nil {
		return filter, err
	}
	c.shared.memo[key] = &shareable{filter, c.keeper.since(at)}
	return filter, nil
}

// file is exchange.Env.File: it notes what the unit was compiled with.
func (c *compiler) file(name string) (*file.Followed, error) {
	f, err := c.house.Inputs.File(name)
	if err == nil {
		c.keeper.unit.files = append(c.keeper.unit.files, usedFile{name, f, f.Content()})
	}
	return f, err
}
