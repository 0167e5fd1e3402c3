// Package https holds what headgate promises of TLS, end to end: real sockets,
// files and configurations, a whole control, and the clients that people use.
//
// The tests are of the promises in docs/guides/https.md. The scripts of package
// spec hold what is said over TLS; here it is who may say it, and with which
// certificate.
package https
