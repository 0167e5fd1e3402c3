package config

import (
	"net/netip"

	"headgate/internal/config/document"
)

// AdminAddress returns the address of the admin listener that documents name, also where
// they are no valid configuration: a command wants to know how the headgate stands that
// serves what was there before. It is false where they do not tell, or not legibly.
func AdminAddress(docs Documents) (netip.AddrPort, bool) {
	for _, src := range docs.List {
		doc, problem := document.Read(src.Name, src.Data, document.Outline{})
		if problem != nil || doc.Root() == nil {
			continue
		}
		node := doc.Root()
		for path := "admin.address"; path != "" && node != nil; {
			var step document.Step
			step, path = document.CutStep(path)
			_, node = step.Find(document.Resolved(node))
		}
		if node == nil {
			continue
		}
		text, unset := newExpander(docs.Dir).text(document.Resolved(node).Value)
		if unset != nil {
			continue
		}
		if at, err := netip.ParseAddrPort(text); err == nil {
			return at, true
		}
	}
	return netip.AddrPort{}, false
}
