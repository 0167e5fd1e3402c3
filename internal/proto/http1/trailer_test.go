package http1_test

import (
	"testing"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

func TestFieldsThatMayTrail(t *testing.T) {
	for name, want := range map[string]bool{
		"grpc-status": true, "ETag": true, "Proxy-Status": true, "X-Checksum": true,
		"Content-Length": false, "Host": false, "Authorization": false, "Set-Cookie": false,
		"X-Forwarded-For": false, "x_forwarded_for": false, "Transfer_Encoding": false,
	} {
		if got := http1.MayTrail(header.Lookup(name), name); got != want {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
}

func TestLengthsAreDigitsBelow2To63(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "007": 7, "9223372036854775807": 1<<63 - 1,
		"": -1, "-1": -1, "+1": -1, "1 ": -1, "1,1": -1, "0x1": -1, "9223372036854775808": -1, "99999999999999999999": -1,
	} {
		if got := http1.ParseLength(text); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}
