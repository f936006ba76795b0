SELECT coalesce(sum(CASE state WHEN 'settled' THEN cost WHEN 'released' THEN 0 ELSE bound END), 0) FROM call;
