package config

import (
	"net/netip"

	"headgate/internal/config/decode"
	"headgate/internal/config/document"
)

// AdminAddress returns the address of the admin listener in documents, even if they are not
// a valid configuration: a command needs it to query the headgate that still serves the
// previous one. It returns false if the documents do not contain it, or not as a valid
// address.
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
		text, unset := decode.NewExpander(docs.Dir).Text(document.Resolved(node).Value)
		if unset != nil {
			continue
		}
		if at, err := netip.ParseAddrPort(text); err == nil {
			return at, true
		}
	}
	return netip.AddrPort{}, false
}
