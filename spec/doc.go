// Package spec holds the specification as scripts: one script for each rule,
// each a configuration, what a client sends, what the server must get, what the
// server answers, and what the client must get. The scripts are in testdata and
// run with the package's tests, over every protocol that headgate speaks to
// clients. rules.txt lists the rules; a rule without a script fails the tests.
//
// A script is a txtar archive. Its comment says which rule it is for, in a line
// "rule: NAME". Its files run in order:
//
//	config            the configuration; UPSTREAM stands for the address of a
//	                  server that the script plays, UPSTREAM2 for a second one,
//	                  SOCKET for the path of a Unix socket and TLSUPSTREAM for
//	                  an address of TLS with the authority in CAFILE, at both of
//	                  which the first server listens,
//	                  DEAD for an address without a listener, and a port of
//	                  "protocol: http}" speaks HTTPS where the script runs so;
//	                  UPSTREAMPORT is the number of the first server's port;
//	                  STICKY and STICKY2 are the values of the sticky cookie for
//	                  the two servers on the route /app of the proxy p
//	folder/NAME       a file; FOLDER in the configuration stands for the path of the
//	                  folder with all of them
//	request           what the client sends; PORT-less, lines end in LF here
//	upstream gets     what the server must get, byte for byte; SCHEME stands for
//	                  the client's, VERSION for its HTTP version, SECURE for
//	                  what cookies carry over TLS
//	upstream answers  what the server answers
//	upstream closes   the server closes the connection of the last request;
//	                  "upstream2" in these three is the second server
//	response          what the client must get: the status line, the fields that
//	                  must be there, "!Name" for a field that must not, and the
//	                  body, byte for byte
//	closed            the client's connection must have ended
//
// A script runs over HTTP/1.1, HTTP/1.1 over TLS, HTTP/2 over TLS, and HTTP/3. One
// about the bytes of HTTP/1.1 itself says "only: h1" in its comment, one about
// HTTP/2 and HTTP/3 "only: streams", one about TLS "only: tls", one about http ports
// "only: plain". Over HTTP/2 and HTTP/3 the
// client makes frames of a request's text and text of a response's frames;
// fields that belong to connections of HTTP/1.1 are left out, "closed" is the
// end of the stream, and names and order of the fields that a server gets may
// differ, but not their values.
//
// The order request, upstream gets, upstream answers, response may repeat on one
// connection. Without "upstream gets" no request may reach a server.
//
// "explain: no" in the comment says that what the server gets depends on requests
// before, so that Explain, which knows none, cannot tell it.
package spec
