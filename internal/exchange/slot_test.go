package exchange

import "testing"

type (
	quota struct{ left int }
	pin   struct{ token [3]uint64 }
)

var (
	quotas = NewSlot[quota](false)
	pins   = NewSlot[pin](true)
	others = NewSlot[quota](false)
)

func TestASlotIsARoomsOwn(t *testing.T) {
	ex := &Exchange{}
	ex.Reset(&Conn{}, nil)
	if quotas.Get(ex) != nil {
		t.Error("a slot holds something before anything was put there")
	}
	quotas.Put(ex, quota{7})
	if got := quotas.Get(ex); got == nil || got.left != 7 {
		t.Errorf("got %v, want 7", got)
	}
	if got := others.Get(ex); got != nil {
		t.Errorf("a slot of the same type holds %v, want nothing", got)
	}
	quotas.Drop(ex)
	if got := quotas.Get(ex); got != nil {
		t.Errorf("dropped, it holds %v", got)
	}
}

func TestASlotIsEmptyForTheNextExchangeAndKeepsItsMemory(t *testing.T) {
	ex := &Exchange{}
	ex.Reset(&Conn{}, nil)
	quotas.Put(ex, quota{7})
	was := quotas.Get(ex)
	ex.Reset(ex.Conn, nil)
	if got := quotas.Get(ex); got != nil {
		t.Errorf("the next exchange has %v, want nothing", got)
	}
	if now := quotas.Reuse(ex); now != was {
		t.Error("the next exchange has other memory")
	}
}

func TestCarrySlotsTakesWhatTravels(t *testing.T) {
	from, to := &Exchange{}, &Exchange{}
	quotas.Put(from, quota{7})
	pins.Put(from, pin{[3]uint64{1}})
	from.CarrySlots(to)
	if got := quotas.Get(to); got != nil {
		t.Errorf("the limit of another exchange travels: %v", got)
	}
	if got := pins.Get(to); got == nil || got.token[0] != 1 || got == pins.Get(from) {
		t.Errorf("got %v, want a copy of the pin", got)
	}
	pins.Drop(from)
	if from.CarrySlots(to); pins.Get(to) != nil {
		t.Errorf("a pin stays that is gone: %v", pins.Get(to))
	}
}

func TestSlotsAllocateNothing(t *testing.T) {
	ex, conn := &Exchange{}, &Conn{}
	n := testing.AllocsPerRun(1000, func() {
		ex.Reset(conn, nil)
		quotas.Put(ex, quota{1})
		pins.Put(ex, pin{})
		if quotas.Get(ex).left != 1 || others.Get(ex) != nil {
			t.Error("lost")
		}
	})
	if n != 0 {
		t.Errorf("%v allocations for each exchange, want none", n)
	}
}

// BenchmarkBegin is what each request pays, with slots or without.
func BenchmarkBegin(b *testing.B) {
	ex, conn := &Exchange{}, &Conn{}
	b.ReportAllocs()
	for b.Loop() {
		ex.Reset(conn, nil)
	}
}

func BenchmarkSlot(b *testing.B) {
	ex, conn := &Exchange{}, &Conn{}
	ex.Reset(conn, nil)
	pins.Put(ex, pin{})
	b.ReportAllocs()
	for b.Loop() {
		quotas.Put(ex, quota{1})
		if quotas.Get(ex).left != 1 {
			b.Fatal("lost")
		}
	}
}
