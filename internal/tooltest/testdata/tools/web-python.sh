# needs: python3 curl
# prints: curl got: a page
# prints: urllib got: a page
# prints: over IPv6: a page
# prints: unix socket: pong
echo 'a page' >page.txt
python3 -u - <<'END'
import functools, http.server, socket, subprocess, threading, urllib.request
class quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *a): pass
class six(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
for cls, host, url in ((http.server.ThreadingHTTPServer, '127.0.0.1', 'http://127.0.0.1:%d/page.txt'), (six, '::1', 'http://[::1]:%d/page.txt')):
    s = cls((host, 0), quiet)
    threading.Thread(target=s.serve_forever, daemon=True).start()
    url = url % s.server_address[1]
    if host == '127.0.0.1':
        print('curl got:', subprocess.check_output(['curl', '-sS', '--noproxy', '*', url], text=True), end='')
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        print('urllib got:', opener.open(url.replace('127.0.0.1', 'localhost')).read().decode(), end='')
    else:
        print('over IPv6:', subprocess.check_output(['curl', '-sS', '--noproxy', '*', url], text=True), end='')
l = socket.socket(socket.AF_UNIX); l.bind('s.sock'); l.listen()
c = socket.socket(socket.AF_UNIX); c.connect('s.sock')
a, _ = l.accept(); a.sendall(b'pong'); print('unix socket:', c.recv(9).decode())
END
