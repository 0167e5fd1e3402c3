package h3

import (
	"errors"
	"io"
)

// reader is the receiving side of a stream.
type reader interface{ Read(p []byte) (int, error) }

// input reads frames off a stream. What is below floor is held: views point
// there.
type input struct {
	from        reader
	buf         []byte
	floor, r, w int
	end         bool // the stream has ended: nothing comes behind what is here
}

// inputSize is how much is read at once, in bytes.
const inputSize = 4 << 10

// roomLeast is the minimum free space for a read, in bytes.
const roomLeast = 512

// reset readies the input for a stream.
func (in *input) reset(from reader) {
	if len(in.buf) != inputSize {
		in.buf = make([]byte, inputSize)
	}
	*in = input{from: from, buf: in.buf}
}

// bytes are those that were read and not used.
func (in *input) bytes() []byte { return in.buf[in.r:in.w] }

// hold keeps everything that was used where it is.
func (in *input) hold() { in.floor = in.r }

// errEnd says that the stream has ended cleanly between two frames.
var errEnd = errors.New("the stream has ended")

// errTruncated is a frame that is not whole (RFC 9114, section 7.1).
var errTruncated = broken(frameError, "the stream ends within a frame (RFC 9114, section 7.1)")

// fill reads more. At the end of the stream it returns io.EOF.
func (in *input) fill() error {
	if in.end {
		return io.EOF
	}
	if in.r == in.w {
		in.r, in.w = in.floor, in.floor
	}
	if len(in.buf)-in.w < roomLeast {
		in.move(in.w - in.r + roomLeast)
	}
	n, err := in.from.Read(in.buf[in.w:])
	in.w += n
	if err == io.EOF {
		in.end = true
		if n > 0 {
			return nil
		}
	}
	return err
}

// move makes space for size bytes behind what is held, in other memory if
// necessary. What is held stays where it is.
func (in *input) move(size int) {
	old := in.bytes()
	if in.floor+size > len(in.buf) {
		in.buf, in.floor = make([]byte, max(size+size/2, inputSize)), 0
	}
	in.w = in.floor + copy(in.buf[in.floor:], old)
	in.r = in.floor
}

// await reads until n bytes have arrived. Memory is allocated as they arrive, not
// for a length that a client announces.
func (in *input) await(n int) error {
	for in.w-in.r < n {
		if err := in.fill(); err != nil {
			if err == io.EOF {
				err = errTruncated
			}
			return err
		}
	}
	return nil
}

// frame reads the type and the length of a frame. It returns errEnd if the stream
// ends before it.
func (in *input) frame() (kind, length uint64, err error) {
	for {
		kind, n := varint(in.bytes())
		if n > 0 {
			if length, m := varint(in.bytes()[n:]); m > 0 {
				in.r += n + m
				return kind, length, nil
			}
		}
		switch err := in.fill(); {
		case err == io.EOF && in.r == in.w:
			return 0, 0, errEnd
		case err == io.EOF:
			return 0, 0, errTruncated
		case err != nil:
			return 0, 0, err
		}
	}
}

// skipUnit is how many bytes of a frame that is of no use count as another one.
const skipUnit = 4 << 10

// skip drops a frame of n bytes that is of no use, and charges b for it: a client may
// say that it has 2^62 bytes, and send them.
func (in *input) skip(n uint64, b *budget) error {
	if err := b.charge(frameFlood); err != nil {
		return err
	}
	for left := skipUnit; n > 0; {
		if left <= 0 {
			left += skipUnit
			if err := b.charge(frameFlood); err != nil {
				return err
			}
		}
		if in.r == in.w {
			if err := in.fill(); err != nil {
				if err == io.EOF {
					err = errTruncated
				}
				return err
			}
		}
		k := min(n, uint64(in.w-in.r))
		in.r += int(k)
		n -= k
		left -= int(k)
	}
	return nil
}
