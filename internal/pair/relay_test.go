package pair

import (
	"testing"

	"headgate/internal/store"
)

// TestSignInsOfPeopleAreRelayed holds which changes of people a follower sends to the leader, and
// which of them wait for the follower with sync.
func TestSignInsOfPeopleAreRelayed(t *testing.T) {
	const account = store.PrefixPerson + "account/ann"
	known := []store.Condition{{Key: account, Revision: 7}}
	put := []store.Entry{{Key: account}, {Key: store.PrefixPerson + "used/x"}}
	for name, c := range map[string]struct {
		change         store.Change
		relayed, waits bool
	}{
		"a sign-in":                       {store.Change{If: known, Put: put, Who: "headgate"}, true, false},
		"an accepted invitation":          {store.Change{If: known, Put: put, Delete: []string{store.PrefixPerson + "invitation/x"}, Who: "local/ann"}, true, true},
		"a change by an operator":         {store.Change{If: known, Put: put, Who: "ops"}, false, true},
		"a new person":                    {store.Change{If: []store.Condition{{Key: account}}, Put: put, Who: "local/ann"}, false, true},
		"a new person in a sign-in":       {store.Change{Put: put, Who: "headgate"}, false, true},
		"the first key of sign-ins":       {store.Change{If: []store.Condition{{Key: store.KeyGate}}, Put: []store.Entry{{Key: store.KeyGate}}}, true, false},
		"another key of sign-ins":         {store.Change{Put: []store.Entry{{Key: store.KeyGate}}}, false, false},
		"a sign-in with something beside": {store.Change{If: known, Put: append([]store.Entry{{Key: store.PrefixUser + "eve"}}, put...), Who: "headgate"}, false, true},
	} {
		if got := relayed("b", &c.change); got != c.relayed {
			t.Errorf("%s is relayed: %v", name, got)
		}
		if got := important(&c.change); got != c.waits {
			t.Errorf("%s waits for the follower: %v", name, got)
		}
	}
}
