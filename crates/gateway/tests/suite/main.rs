//! What a server does with other programs: the proxy in simulated worlds, CGI with real programs.

mod cgi;
mod cgi_faults;
mod fastcgi;
mod proxy;
mod proxy_faults;
mod scripts;
