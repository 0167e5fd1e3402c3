package exchange

import (
	"net/netip"
	"reflect"
	"testing"
)

func TestConnIsCopiedWhileStreamsBegin(t *testing.T) {
	at := netip.MustParseAddrPort("127.0.0.1:1")
	conn := &Conn{Remote: at, Local: at, Peer: "p", Scheme: "https", ServerName: "n", ClientSubject: "s", ClientFingerprint: "f", TLSVersion: 1, TLSCipher: 2, ECH: true, Serial: 7}
	begun := make(chan struct{})
	go func() { // the race detector looks on
		defer close(begun)
		(&Exchange{}).Reset(conn, nil)
	}()
	got := conn.Copy()
	<-begun
	conn.requests = 0
	if got != *conn {
		t.Errorf("got %+v, want %+v", got, *conn)
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Conn]()) {
		if field.IsExported() && reflect.ValueOf(got).FieldByIndex(field.Index).IsZero() {
			t.Errorf("%s is not copied, or the test does not set it", field.Name)
		}
	}
}
