package listen

import (
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"
)

// TestUsersOfSockets holds what is read of the system's table of sockets.
func TestUsersOfSockets(t *testing.T) {
	table := filepath.Join(t.TempDir(), "tcp")
	const text = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000   101        0 4711 1 0000000000000000 100 0 0 10 0
   1: 00000000:0051 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000000000000000 100 0 0 10 0
   2: 00000000:0050 00000000:0000 01 00000000:00000000 00:00000000 00000000     7        0 4713 1 0000000000000000 100 0 0 10 0
`
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	addListeners(got, table, listening, netip.MustParseAddrPort("127.0.0.1:80"))
	if len(got) != 1 || got["socket:[4711]"] != "101" {
		t.Errorf("sockets that listen on port 80: %v, want 4711 of user 101", got)
	}
	me, err := user.LookupId("0")
	if err != nil {
		t.Skip(err)
	}
	if got, want := userOf(map[string]string{"socket:[1]": "0"}), "a process of user "+me.Username; got != want {
		t.Errorf("userOf = %q, want %q", got, want)
	}
	if got, want := userName(strconv.Itoa(1<<31-7)), "the user with number 2147483641"; got != want {
		t.Errorf("userName of a user without a name = %q, want %q", got, want)
	}
}
