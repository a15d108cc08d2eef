vcl 4.1;

# Everything else is Varnish's default: its built-in rules, and the size of its thread pool.
backend default {
    .host = "${origin_host}";
    .port = "${origin_port}";
}
