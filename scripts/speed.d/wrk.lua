-- What wrk measured, as one line of JSON at the end; times in microseconds.
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format(
        'RESULT {"requests": %d, "bytes": %d, "micros": %d, ' ..
        '"connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d, "p50": %d, "p99": %d}\n',
        summary.requests, summary.bytes, summary.duration,
        errors.connect, errors.read, errors.write, errors.status, errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
