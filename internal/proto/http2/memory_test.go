package http2

import (
	"bytes"
	"testing"
)

func TestChunksKeepBytesInOrder(t *testing.T) {
	var l Chunks
	var want []byte
	for n, size := range []int{1, smallChunk, 3, largeChunk, 2*largeChunk + 5} {
		piece := bytes.Repeat([]byte{byte('a' + n)}, size)
		l.Put(piece)
		want = append(want, piece...)
	}
	own := TakeChunk(largeChunk)
	own.W = copy(own.Mem, "own")
	l.Add(own)
	want = append(want, "own"...)
	if l.Size() != len(want) || l.Empty() || l.Single() {
		t.Errorf("got %d bytes, want %d in several pieces", l.Size(), len(want))
	}
	var got []byte
	for !l.Empty() {
		k := l.Pop()
		got = append(got, k.Rest()...)
		k.Release()
	}
	if !bytes.Equal(got, want) || l.Size() != 0 {
		t.Errorf("got %d bytes and %d left, want %d and none", len(got), l.Size(), len(want))
	}
	l.Put([]byte("x"))
	if !l.Single() {
		t.Error("one piece is not told as such")
	}
	l.Drop()
	if !l.Empty() || l.Size() != 0 {
		t.Error("something is left after Drop")
	}
}
