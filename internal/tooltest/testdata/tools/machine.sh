# needs: lscpu nproc free uptime df mount findmnt ps top id ss ip lsns vmstat getent locale
# prints: processors: as many as nproc says
# prints: NUMA nodes are named
# prints: memory: Mem:
# prints: load average
# prints: the workspace has a file system
# prints: on /proc type proc
# prints: /proc
# prints: top - 
# prints: lo: 127.0.0.1/8
# prints: uid=
# prints: root:x:0:0
# What people ask of a machine, each with the status that it has outside.
[ "$(lscpu -p=CPU | grep -vc '^#')" -ge "$(nproc)" ] && echo processors: as many as nproc says
[ ! -d /sys/devices/system/node ] || lscpu | grep -q 'NUMA node(s)'
echo NUMA nodes are named
free | sed -n 's/^\(Mem:\).*/memory: \1/p'
uptime
df . >/dev/null && echo the workspace has a file system
mount | grep ' on /proc type proc '
findmnt -n -o TARGET /proc
ps aux >/dev/null && ps -ef >/dev/null
top -b -n1 | head -n1 || [ $? = 141 ]
ss -tlnp >/dev/null
ip -4 -o addr show lo | awk '{print "lo: " $4}'
ip route >/dev/null
lsns >/dev/null
vmstat >/dev/null
locale >/dev/null
id
getent passwd root
