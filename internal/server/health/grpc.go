package health

import (
	"fmt"
	"io"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// grpcPath is the path of the gRPC health checking protocol.
const grpcPath = "/grpc.health.v1.Health/Check"

// grpcRequest returns the request message for a service: an uncompressed frame
// with field 1 of HealthCheckRequest.
func grpcRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = append(message, 1<<3|2)
		message = appendVarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	n := len(message)
	return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, message...)
}

func appendVarint(b []byte, n uint64) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

// fillGRPC makes the subrequest the call of the protocol.
func (k *Check) fillGRPC() {
	rq := &k.subrequest.Request
	rq.Header.Add(header.ContentType, "application/grpc")
	rq.AcceptsTrailers = true
	rq.Length = int64(len(k.call))
	rq.Body = &call{left: k.call}
}

// call is the body of the request. All of it is at hand.
type call struct{ left []byte }

func (c *call) Read(p []byte) (int, error) {
	n := copy(p, c.left)
	if c.left = c.left[n:]; len(c.left) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (c *call) Ready() bool           { return true }
func (c *call) Close() error          { return nil }
func (c *call) Whole() ([]byte, bool) { return c.left, true }

// servingStatus are the words of HealthCheckResponse.status.
var servingStatus = [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

const serving = 1

// judgeGRPC reports problems of the answer to a call, whose body has been read.
func (k *Check) judgeGRPC(rs *exchange.Response) string {
	if kind := rs.Header.Get(header.ContentType); rs.Status != 200 || !strings.HasPrefix(kind, "application/grpc") {
		return fmt.Sprintf("the answer is not gRPC: status %d, type %q", rs.Status, kind)
	}
	code, message := grpcStatus(rs)
	switch {
	case code == "12":
		return "the server does not know the gRPC health checking protocol"
	case code == "5":
		return fmt.Sprintf("the server does not know the service %q", k.config.Service)
	case code != "0":
		return strings.TrimSpace(fmt.Sprintf("grpc-status %s %s", code, message))
	}
	state, ok := readServing(k.buffer)
	switch {
	case !ok:
		return "the answer is not a message of the gRPC health checking protocol"
	case state == serving:
		return ""
	case state < uint64(len(servingStatus)):
		return "the service is " + servingStatus[state]
	}
	return fmt.Sprintf("the service has the unknown status %d", state)
}

// grpcStatus returns the status of a call: from its trailers, or from the head when
// there is nothing else.
func grpcStatus(rs *exchange.Response) (code, message string) {
	for _, list := range []*header.List{&rs.Trailer, &rs.Header} {
		if value, ok := list.Lookup("grpc-status"); ok {
			message, _ = list.Lookup("grpc-message")
			return strings.Clone(value), strings.Clone(message)
		}
	}
	return "missing", ""
}

// readServing reads field 1 of a HealthCheckResponse in its frame. What is not in a
// message has its zero value.
func readServing(b []byte) (state uint64, ok bool) {
	if len(b) < 5 || b[0] != 0 {
		return 0, false
	}
	n := int(b[1])<<24 | int(b[2])<<16 | int(b[3])<<8 | int(b[4])
	if b = b[5:]; n != len(b) {
		return 0, false
	}
	for len(b) > 0 {
		tag, k := readVarint(b)
		if k == 0 || tag&7 != 0 {
			return state, k > 0 // a field that is no number was added after ours
		}
		value, m := readVarint(b[k:])
		if m == 0 {
			return 0, false
		}
		if tag>>3 == 1 {
			state = value
		}
		b = b[k+m:]
	}
	return state, true
}

// readVarint returns a number and its length in bytes, 0 if it is invalid.
func readVarint(b []byte) (n uint64, size int) {
	for i := 0; i < len(b) && i < 10; i++ {
		n |= uint64(b[i]&0x7f) << (7 * i)
		if b[i] < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}
