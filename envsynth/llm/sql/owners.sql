SELECT DISTINCT owner FROM call WHERE state = 'reserved';
