package plan

import (
	"crypto/sha256"

	"headgate/internal/certs"
	"headgate/internal/exchange"
	"headgate/internal/file"
	"headgate/internal/plan/inputs"
)

// held is a part that outlives plans. It is retired when the last unit or part that
// uses it is gone.
type held struct {
	key   partKey
	part  exchange.Kept
	needs []*held // parts that were opened for it and live as long
	users int     // units of plans, and parts that need it
}

// partKey is the hash of the key of a part. Keys are long, and there are several for each
// route.
type partKey [16]byte

// keyOf returns the hash of a key.
func keyOf(key []byte) partKey {
	sum := sha256.Sum256(key)
	return partKey(sum[:16])
}

// parts are the parts of plans that follow each other, by their keys. Compile and
// Retire change it: one change runs at a time.
type parts map[partKey]*held

// release gives up one use of a part.
func (t parts) release(h *held) {
	if h.users--; h.users > 0 {
		return
	}
	if t[h.key] == h {
		delete(t, h.key)
	}
	h.part.Retire()
	for _, need := range h.needs {
		t.release(need)
	}
}

// unit is a part of a plan that the next plan reuses if it has not changed: a proxy, and in
// each plan what belongs to no proxy. Several plans can share it; it is immutable once it
// is compiled.
type unit struct {
	uses     []*held
	files    []usedFile
	pairs    []usedPair
	counters []retirer
}

// usedFile is what a file held when the unit was compiled.
type usedFile struct {
	name    string
	file    *file.Followed
	content *file.Content
}

// usedPair is a certificate that the unit was compiled with.
type usedPair struct {
	name  string
	place inputs.Place
	pair  *certs.Certificate
}

// retire gives up what the unit uses.
func (u *unit) retire(t parts) {
	for _, h := range u.uses {
		t.release(h)
	}
	for _, c := range u.counters {
		c.Retire()
	}
}

// same reports whether the inputs that the unit was compiled with are still the same.
func (u *unit) same(house *House) bool {
	for _, f := range u.files {
		if now, err := house.Inputs.File(f.name); err != nil || now != f.file || now.Content() != f.content {
			return false
		}
	}
	for _, p := range u.pairs {
		if now, _ := house.Inputs.Pair(p.name, p.place); now != p.pair {
			return false
		}
	}
	return true
}

// keeper carries parts over from the plan before. It belongs to one Compile.
type keeper struct {
	parts parts
	// unit is what is being compiled.
	unit *unit
	// unstarted are the parts opened now that wait for their plan to be used.
	unstarted []starter
	// opening are the parts that are being opened, the innermost last.
	opening []*held
	buffer  []byte
	// carried is what the process before has handed over.
	carried Carried
}

func newKeeper(prev *Plan, carried Carried) *keeper {
	k := &keeper{parts: parts{}, carried: carried}
	if prev != nil {
		k.parts = prev.parts
	}
	return k
}

// keep is exchange.Env.Keep.
func (k *keeper) keep(text string, open func() exchange.Kept) exchange.Kept {
	k.buffer = append(k.buffer[:0], text...)
	key := keyOf(k.buffer)
	h := k.parts[key]
	if h == nil {
		h = &held{key: key}
		k.opening = append(k.opening, h)
		h.part = open()
		k.opening = k.opening[:len(k.opening)-1]
		k.parts[key] = h
		k.carried.restore(h)
		if b, ok := h.part.(starter); ok {
			k.unstarted = append(k.unstarted, b)
		}
	}
	k.use(h)
	return h.part
}

// starter is a part that is inactive until its plan is used.
type starter interface{ Start() }

// carry returns the part with this key if there is one.
func (k *keeper) carry(key []byte) exchange.Kept {
	h := k.parts[keyOf(key)]
	if h == nil {
		return nil
	}
	k.use(h)
	return h.part
}

// use notes that what is being opened, or else the unit, uses a part.
func (k *keeper) use(h *held) {
	h.users++
	if n := len(k.opening); n > 0 {
		k.opening[n-1].needs = append(k.opening[n-1].needs, h)
		return
	}
	k.unit.uses = append(k.unit.uses, h)
}

// since returns what the unit uses since it was at a mark, for others that share
// what was compiled meanwhile.
func (k *keeper) since(at mark) unit {
	u := k.unit
	return unit{uses: u.uses[at.uses:len(u.uses):len(u.uses)], files: u.files[at.files:len(u.files):len(u.files)]}
}

// share has the unit use what another one of this compile uses already.
func (k *keeper) share(of *unit) {
	for _, h := range of.uses {
		k.use(h)
	}
	k.unit.files = append(k.unit.files, of.files...)
}

// mark is how much a unit used at a moment.
type mark struct{ uses, files int }

func (k *keeper) mark() mark { return mark{len(k.unit.uses), len(k.unit.files)} }
