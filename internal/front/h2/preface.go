package h2

import "headgate/internal/proto/http2"

// Preface is what a client's connection begins with, by which a connection
// without TLS is known to speak HTTP/2 (RFC 9113, section 3.4).
const Preface = http2.Preface
