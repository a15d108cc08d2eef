package httpcache

import (
	"bufio"
	"net"
	"net/http"
)

// statusWriter notes the status. It offers what handlers ask a writer for; if the server's own writer can't do it, the
// calls fail.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if status >= 200 || status == http.StatusSwitchingProtocols {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for [http.ResponseController].
func (w *statusWriter) Unwrap() http.ResponseWriter {
	return w.ResponseWriter
}

// FlushError is what [http.ResponseController] calls.
func (w *statusWriter) FlushError() error {
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush makes it an [http.Flusher].
func (w *statusWriter) Flush() {
	w.FlushError()
}

// Hijack makes it an [http.Hijacker].
func (w *statusWriter) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(w.ResponseWriter).Hijack()
}
