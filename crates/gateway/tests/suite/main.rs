//! What a server does with other programs: proxy and FastCGI in simulated worlds, also all of a
//! server together, and CGI with real programs.

mod any_bytes;
mod cgi;
mod cgi_faults;
mod fastcgi;
mod fastcgi_ways;
mod proxy;
mod proxy_faults;
mod scripts;
mod two_ways;
mod whole_server;
