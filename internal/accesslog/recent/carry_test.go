package recent

import (
	"fmt"
	"testing"
	"time"

	"headgate/internal/exchange"
)

func TestRecentRequestsGoToAnotherProcess(t *testing.T) {
	old, now := New(Config{}), New(Config{})
	for i := range 50 {
		old.Record(finished(uint64(i), fmt.Sprintf("/before/%d", i), 200+300*(i%2), time.Duration(i)*time.Millisecond))
	}
	old.RecordSession(&exchange.Session{Protocol: "udp", Proxy: "dns", Name: "a.example", Start: exchange.Now(), End: exchange.Now(), Sent: 7})
	data, fresh := old.Export(1 << 20)
	now.Import(data)
	want, got := old.Find(Query{}, Cursor{}, 100).Requests, now.Find(Query{}, Cursor{}, 100).Requests
	if len(got) != 51 {
		t.Fatalf("got %d requests", len(got))
	}
	for i := range want {
		if d := want[i].Time.Sub(got[i].Time).Abs(); d > time.Second {
			t.Errorf("%s: at %v, want %v", want[i].Path, got[i].Time, want[i].Time)
		}
		want[i].Time, got[i].Time = time.Time{}, time.Time{}
		if want[i] != got[i] {
			t.Errorf("got  %+v\nwant %+v", got[i], want[i])
		}
	}
	if fresh.Export(1<<20) != nil {
		t.Error("something is new")
	}
	old.Record(finished(99, "/after", 200, time.Millisecond))
	now.Import(fresh.Export(1 << 20))
	if got := now.Find(Query{}, Cursor{}, 1).Requests; len(got) != 1 || got[0].Path != "/after" {
		t.Errorf("got %+v", got)
	}
	if n := len(now.Find(Query{}, Cursor{}, 100).Requests); n != 52 {
		t.Errorf("%d requests, want each once", n)
	}
}

func TestExportIsBounded(t *testing.T) {
	old, now := New(Config{}), New(Config{})
	for i := range 500 {
		old.Record(finished(uint64(i), fmt.Sprintf("/%d", i), 200, 0))
	}
	data, _ := old.Export(10_000)
	if len(data) > 10_000 {
		t.Errorf("%d bytes", len(data))
	}
	now.Import(data)
	if got := now.Find(Query{}, Cursor{}, 1).Requests; len(got) != 1 || got[0].Path != "/499" {
		t.Errorf("got %+v, want the newest", got)
	}
}

func FuzzImport(f *testing.F) {
	r := New(Config{})
	r.Record(finished(1, "/x", 200, time.Second))
	r.Record(finished(2, "/y", 404, 0))
	data, _ := r.Export(1 << 20)
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		now := New(Config{Size: MinSize})
		now.Import(data)
		now.Find(Query{}, Cursor{}, MaxPage)
		again, _ := now.Export(1 << 20)
		New(Config{Size: MinSize}).Import(again)
	})
}
