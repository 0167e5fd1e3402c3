package control

import (
	"net"
	"testing"
)

func TestABusyAdminAddressKeepsNobodyFromBeingServed(t *testing.T) {
	t.Parallel()
	at := free(t, 2)
	busy, err := net.Listen("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	h := prepare(t, withAdmin(201, at[1], "stderr", "a "+at[0]))
	h.retrySoon(nil)
	h.run()
	want(t, at[0], 201)
	if n := h.log.count("admin listener waits"); n != 1 {
		t.Errorf("it was said %d times that the admin listener waits, want once", n)
	}
	h.apply(withAdmin(202, at[1], "stderr", "a "+at[0])) // other changes are not held up
	want(t, at[0], 202)
	busy.Close()
	eventually(t, "the admin listener is opened", func() bool { return h.c.admin.Address().String() == at[1] })
}
