package plan

import "headgate/internal/exchange"

// held is a part that outlives plans, with the keys of the parts that were
// opened for it and live as long.
type held struct {
	key   string
	part  exchange.Kept
	needs []string
}

// keeper carries parts over from the plan before. It belongs to one Compile.
type keeper struct {
	before map[string]*held
	now    map[string]*held
	// begin are the parts opened now that wait for their plan to be used.
	begin []beginner
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
	if part := k.carry([]byte(key)); part != nil {
		return part
	}
	h := &held{key: key}
	k.opening = append(k.opening, h)
	h.part = open()
	k.opening = k.opening[:len(k.opening)-1]
	k.now[key] = h
	if b, ok := h.part.(beginner); ok {
		k.begin = append(k.begin, b)
	}
	return h.part
}

// beginner is a part that does nothing of its own before its plan is used.
type beginner interface{ Begin() }

// carry returns the part with this key if there is one: this Compile's, or that
// of the plan before, which is carried over then. It allocates nothing.
func (k *keeper) carry(key []byte) exchange.Kept {
	if h := k.before[string(key)]; h != nil {
		k.adopt(h)
		return h.part
	}
	if h := k.now[string(key)]; h != nil {
		return h.part
	}
	return nil
}

// has reports whether a part is kept already.
func (k *keeper) has(key string) bool { return k.now[key] != nil || k.before[key] != nil }

// adopt takes a part of the plan before, and what it needs.
func (k *keeper) adopt(h *held) {
	n := len(k.now)
	if k.now[h.key] = h; len(k.now) == n {
		return // it was taken before
	}
	for _, need := range h.needs {
		if part := k.before[need]; part != nil {
			k.adopt(part)
		}
	}
}
