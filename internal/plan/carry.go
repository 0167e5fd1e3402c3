package plan

import (
	"encoding/hex"

	"headgate/internal/exchange"
)

// Carried is the state of the parts of a plan that is handed to another process: rate
// buckets, the states of servers and circuits, the results of checks. Its keys identify the
// settings of a part, so that a part with changed settings starts without state.
type Carried map[string][]byte

// maxCarried bounds what is handed over, in bytes.
const maxCarried = 48 << 20

// Export returns the state of the parts of the plan, for a process that replaces this one.
// left is how many parts were left out because there was too much. No change is compiled
// meanwhile.
func (p *Plan) Export() (all Carried, left int) {
	all = Carried{}
	size := 0
	for key, h := range p.parts {
		part, ok := h.part.(exchange.Carried)
		if !ok {
			continue
		}
		data := part.Export()
		if data == nil {
			continue
		}
		if size+len(data) > maxCarried {
			left++
			continue
		}
		size += len(data)
		all[hex.EncodeToString(key[:])] = data
	}
	return all, left
}

// restore imports into a part that was opened the state that it had in the process before.
func (c Carried) restore(h *held) {
	if len(c) == 0 {
		return
	}
	if part, ok := h.part.(exchange.Carried); ok {
		if data := c[hex.EncodeToString(h.key[:])]; data != nil {
			part.Import(data)
		}
	}
}
