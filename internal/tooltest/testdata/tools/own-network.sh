# needs: python3
# prints: served at port 80: hello
# prints: bound port 53 of UDP
# prints: echo of 127.0.0.1: type 0
# prints: raw sockets: Operation not permitted
# prints: forwarding: Read-only file system
# Ports below 1024 and the sockets of ping are the tool's in a network that is the sandbox's own.
python3 - <<'END'
import socket
s = socket.socket()
s.bind(("127.0.0.1", 80))
s.listen()
c = socket.create_connection(("127.0.0.1", 80))
s.accept()[0].send(b"hello")
print("served at port 80:", c.recv(5).decode())
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
u.bind(("", 53))
print("bound port 53 of UDP")
p = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
p.sendto(bytes([8, 0, 0, 0, 0, 0, 0, 1]), ("127.0.0.1", 0))
print("echo of 127.0.0.1: type", p.recv(64)[0])
for what, f in (
    ("raw sockets", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)),
    ("forwarding", lambda: open("/proc/sys/net/ipv4/ip_forward", "w")),
):
    try:
        f()
        print(what, "WENT THROUGH")
    except OSError as e:
        print(what + ":", e.strerror)
END
