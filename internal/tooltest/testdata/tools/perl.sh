# needs: perl
# prints: perl counts 3 words
# prints: child exit 7
perl -e '
my @w = split " ", "a b c"; print "perl counts ", scalar @w, " words\n";
my $pid = fork; exit 7 if !$pid; waitpid $pid, 0; print "child exit ", $? >> 8, "\n";'
