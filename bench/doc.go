// Bench compares headgate with its peers: nginx, HAProxy and a tuned
// net/http/httputil.ReverseProxy. Each proxy runs on its own core, with the same upstream,
// the same load and the same forwarded headers; rounds alternate (A B C, A B C, …), and
// medians are compared. Numbers of one run can be compared with each other, never with
// those of another machine or day.
//
// It writes its table into docs/performance.md, which must not be edited by hand. It needs
// Linux, wrk, h2load, and the peers; `make bench` provides them. It does not decide whether
// a number is good enough: the table shows the goals, and no test depends on it.
package main
