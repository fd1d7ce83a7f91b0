# needs: dpkg dpkg-query apt-cache update-alternatives
# prints: listed: ii base-files
# prints: of: base-files
# prints: base-files: installed
# prints: alternatives: awk
# prints: Read-only file system
# What is installed can be asked, and nothing installed.
dpkg -l base-files | sed -n 's/^\(ii\)  *\(base-files\).*/listed: \1 \2/p'
dpkg -S /usr/bin/dpkg /usr/lib/os-release | sed -n 's/\(base-files\): .*/of: \1/p'
apt-cache policy base-files | tr -d '\n' | grep -q 'Installed: [0-9]' && echo base-files: installed
update-alternatives --query awk | sed -n 's/^Name: /alternatives: /p'
{ : >/var/lib/dpkg/status; } 2>&1 || true
