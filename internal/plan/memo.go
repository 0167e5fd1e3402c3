package plan

import (
	"slices"

	"headgate/internal/exchange"
	"headgate/internal/file"
)

// memo holds the compiled form of settings that routes share: those of a proxy for its
// routes, the defaults, and unset ones.
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
func (c *compiler) once(key memoKey, compile func() (exchange.Filter, error)) (*shareable, error) {
	if known := c.shared.memo[key]; known != nil {
		c.keeper.share(&known.uses)
		return known, nil
	}
	at := c.keeper.mark()
	filter, err := compile()
	if err != nil {
		return nil, err
	}
	known := &shareable{filter, c.keeper.since(at)}
	c.shared.memo[key] = known
	return known, nil
}

// filterLists are the filter lists of routes. Most routes of many have the same filters as
// others, and share one list: it is likely to be in the processor's cache, and uses memory
// once.
type filterLists struct {
	known map[[longestShared]*shareable][]exchange.Filter
	// of is the list of the route that is compiled, which is its own alone if own is set;
	// all are its filters.
	of  [longestShared]*shareable
	own bool
	all []exchange.Filter
}

// longestShared is how many filters a list has at most that routes share.
const longestShared = 8

// reset prepares the list for another route.
func (l *filterLists) reset() { l.of, l.own, l.all = [longestShared]*shareable{}, false, l.all[:0] }

// share adds a filter that other routes have too, unless it does nothing.
func (l *filterLists) share(f *shareable) {
	if n := len(l.all); n < longestShared && f.filter.Does() {
		l.of[n] = f
		l.all = append(l.all, f.filter)
		return
	}
	l.add(f.filter)
}

// add adds a filter of the route alone, unless it does nothing.
func (l *filterLists) add(f exchange.Filter) {
	if f.Does() {
		l.own = true
		l.all = append(l.all, f)
	}
}

// end returns the list.
func (l *filterLists) end() []exchange.Filter {
	if l.own {
		return slices.Clip(slices.Clone(l.all))
	}
	list, found := l.known[l.of]
	if !found {
		list = slices.Clip(slices.Clone(l.all))
		l.known[l.of] = list
	}
	return list
}

// file is exchange.Env.File: it notes what the unit was compiled with.
func (c *compiler) file(name string) (*file.Followed, error) {
	f, err := c.house.Inputs.File(name)
	if err == nil {
		c.keeper.unit.files = append(c.keeper.unit.files, usedFile{name, f, f.Content()})
	}
	return f, err
}
