package plan

import "headgate/internal/exchange"

// held is a part that outlives plans, with the keys of the parts that were
// opened for it and live as long.
type held struct {
	part  exchange.Kept
	needs []string
}

// keeper carries parts over from the plan before. It belongs to one Compile.
type keeper struct {
	before map[string]*held
	now    map[string]*held
	// opening are the parts that are being opened, the innermost last.
	opening []*held
}

func newKeeper(prev *Plan) *keeper {
	k := &keeper{now: map[string]*held{}}
	if prev != nil {
		k.before = prev.kept
		k.now = make(map[string]*held, len(prev.kept))
	}
	return k
}

// keep is exchange.Env.Keep.
func (k *keeper) keep(key string, open func() exchange.Kept) exchange.Kept {
	if n := len(k.opening); n > 0 {
		outer := k.opening[n-1]
		outer.needs = append(outer.needs, key)
	}
	if h := k.now[key]; h != nil {
		return h.part
	}
	if h := k.before[key]; h != nil {
		k.adopt(key, h)
		return h.part
	}
	h := &held{}
	k.opening = append(k.opening, h)
	h.part = open()
	k.opening = k.opening[:len(k.opening)-1]
	k.now[key] = h
	return h.part
}

// adopt takes a part of the plan before, and what it needs.
func (k *keeper) adopt(key string, h *held) {
	if k.now[key] != nil {
		return
	}
	k.now[key] = h
	for _, need := range h.needs {
		if part := k.before[need]; part != nil {
			k.adopt(need, part)
		}
	}
}
