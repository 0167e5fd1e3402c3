package control

import (
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

func TestTheLastChangeOfAnObjectIsKnown(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(201, "a "+at[0]))
	first := h.c.LastChange("proxies", "all")
	if first.Revision != 1 || first.Via != "file" || first.When.IsZero() {
		t.Fatalf("after the start: %+v, want revision 1", first)
	}
	if _, err := h.c.Change(replaceWith(Cause{Who: "anna", Via: ViaAPI}, document(202, "a "+at[0]))); err != nil {
		t.Fatal(err)
	}
	changed, other := h.c.LastChange("proxies", "all"), h.c.LastChange("ports", "a")
	if changed.Revision != 2 || changed.Who != "anna" || other.Revision != 1 {
		t.Errorf("the proxy was changed by %+v, the port by %+v", changed, other)
	}
	dry := replaceWith(Cause{Via: ViaAPI}, document(203, "a "+at[0]))
	dry.DryRun = true
	if _, err := h.c.Change(dry); err != nil {
		t.Fatal(err)
	}
	if now := h.c.LastChange("proxies", "all"); now != changed {
		t.Errorf("after a dry run: %+v", now)
	}

	// A restart knows it from the revisions, and what was edited meanwhile.
	h.finish()
	write(t, h.file, strings.Replace(h.text(), "protocol: http", "protocol: http, description: by hand", 1))
	h = h.again()
	proxy, port := h.c.LastChange("proxies", "all"), h.c.LastChange("ports", "a")
	if proxy.Revision != 2 || proxy.Who != "anna" || port.Revision != 3 || port.Via != "file" {
		t.Errorf("after a restart the proxy was changed by %+v, the port by %+v", proxy, port)
	}
}
