vcl 4.1;

# All else is Varnish's own: its built-in rules, and the size of its thread pool.
backend default {
    .host = "${origin_host}";
    .port = "${origin_port}";
}
