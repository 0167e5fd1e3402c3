package h2

import "headgate/internal/proto/http2"

// Preface is the start of a client's connection, which identifies HTTP/2 on a
// connection without TLS (RFC 9113, section 3.4).
const Preface = http2.Preface
